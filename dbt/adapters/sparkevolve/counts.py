"""How numbers stand in messages."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number of things as a person reads it: ``1 row``, ``2 rows``, ``0 batches``.

    Args:
        number: how many there are.
        noun: what one of them is called.
        plural: what several are called, if that is not ``noun`` with an ``s``.
    """
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def agreeing(number: int, one: str, several: str) -> str:
    """Return the form of a verb that agrees with a number of things."""
    return one if number == 1 else several
