"""The one place that takes secrets out of texts: errors, warnings and log lines, also those of libraries."""

import base64
import binascii
import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from dbt_common.events.event_manager_client import get_event_manager

MASK = "*****"

# Shorter values are parts of any text. They are looked for only where it is clear that they are the secret.
_SHORTEST = 3
# From here on a value is looked for inside words, too.
_UNMISTAKABLE = 8
# So are these words, which dbt's log is full of.
_ORDINARY = frozenset(
    {
        *("password", "secret", "token", "credential", "true", "false", "null", "none", "default", "user"),
        *("all", "and", "any", "are", "but", "for", "from", "has", "key", "log", "new", "not", "old", "one"),
        *(
            "row",
            "run",
            "set",
            "the",
            "was",
            "with",
            "dbt",
            "sql",
            "model",
            "table",
            "view",
            "schema",
            "spark",
        ),
    }
)

# Parts of the names of settings that hold a secret.
_SECRET = (
    r"pass(?:word|wd|phrase)|(?<![a-z])pwd|secret|token|credential"
    r"|(?:access|account|private|api|cryption)[-_.]?key|connection-string"
    r"|(?<![a-z])(?:sas|sig)(?![a-z])|signature|authorization"
)
# And of a profile's settings, among them headers: elsewhere many a column has such a name.
_HELD = (
    r"(?:auth|functions|kms|license|master|shared|signer|signing|sse|storage|subscription)[-_.]?key\Z"
    r"|[-_.]pass(?:code)?\Z|jwt|assertion"
    r"|(?:\A|[.])header[.].*(?:cookie|bearer|(?<![a-z])(?:auth|session|key|pass)(?![a-z]))"
)
# What is told of a secret is none: where it is kept, whether it is used, how long it is good for.
_ABOUT = r"[-_.](?:enabled|providers?|path|file|ur[il]|endpoint|server|type|class|name|mode|ms|seconds|in|at)"
_SECRET_KEY = re.compile(f"{_SECRET}|{_HELD}", re.IGNORECASE)
# The same for Spark, which asks it of names and of values, by a regular expression of Java's.
SECRETS_OF_SPARK = rf"(?i){_SECRET}|{_HELD}|://[^/\s]*:[^/\s]*@"
_ABOUT_A_SECRET = re.compile(rf"{_ABOUT}\Z", re.IGNORECASE)
_KEY = rf"(?i:(?=[\w.\-]*?(?:{_SECRET}))(?![\w.\-]*{_ABOUT}(?![\w.\-]))[\w.\-]+)"
# Names of columns and settings that only have such a word in them: ids and counts of tokens, a secretary.
_NO_SECRET = re.compile(
    r"(?:token|password|signature|credential)s?[-_.]?ids?\Z|(?:tokeni|secretar)\w*\Z"
    r"|[-_.]?(?:count|counts|length|len|size|limit|number|budget|version|date|time|status|kind|policy)\Z",
    re.IGNORECASE,
)
# user:password@ in a URL. What stands there in a location of Azure's is the name of a container.
_USER_INFO = re.compile(
    r"""(?<=://)(?<!\babfs://)(?<!\babfss://)(?<!\bwasb://)(?<!\bwasbs://)[^/\s"'<>]+@"""
    r"""|(?<=://)[^/\s"'<>]*:[^/\s"'<>]*@"""
)
# What stands in quotes, with any that are escaped inside; the quotes themselves may be escaped, too.
_INSIDE = r"(?P<quoted>(?:\\{3}.|\\.|.)*?)"
# password=..., in the query of a URL, in a connection string or in an option of Java.
_SETTING = re.compile(
    rf"""(?<![\w.\-])(?P<key>{_KEY})==?(?:(\\?["']){_INSIDE}\2"""
    r"""|(?!(?i:bearer|basic)\s)(?P<bare>[^\s&;,"'<>\\]+))""",
    re.DOTALL,
)
# 'password': '...', in the text of a dictionary or in JSON.
_ENTRY = re.compile(
    rf"""(\\?["'])(?P<key>{_KEY})\1\s*:\s*(\\?["']){_INSIDE}\3""",
    re.DOTALL,
)
# s3.session-token -> ..., in Scala's text of a map. An argument of a lambda in SQL has no dot in its name.
_ARROW = re.compile(rf"(?<![\w.\-])(?P<key>(?=\w+[.\-]){_KEY})\s*->\s*(?P<bare>[^\s,]+)")
_SCHEME = r"(?:bearer|basic|token|digest|negotiate|ntlm)"
_HEADER = re.compile(
    rf"""(?i:(authorization\\?["']?(?:\s*:\s*\\?["']?(?:{_SCHEME}\s+)?|\s*=\s*\\?["']?{_SCHEME}\s+)))"""
    # The type of a column of this name is none.
    r"""(?!(?i:optional|required|string|binary|boolean|int|long|bigint|struct|array|map)\b)[^\s"',;\\]+"""
    r"""|(?i:(\bbearer\s+))(?=[^\s"']*\d)(?:[\w.~+/=\-]{16,}|(?=\w*[.~+/=\-])[\w.~+/=\-]{8,})"""
)
# Headers of services, whose names begin with X, and cookies, which have a name.
_FURTHER_HEADER = re.compile(
    r"""(?i:(\bx-[\w\-]*(?:token|key|secret|auth)\\?["']?\s*:\s*\\?["']?))[^\s"',;\\]+"""
    r"""|(?i:(\b(?:set-)?cookie\\?["']?\s*:\s*\\?["']?)(?=[^\s"'=:]+=))[^"'\\\r\n]+"""
)
_BASIC = re.compile(r"(?i:(\bbasic\s+))([A-Za-z0-9+/]{6,}={0,2})")

# The name of a column of a table, or of its alias.
_QUALIFIED = re.compile(r"\w+(?:\.\w+)+")
# One of the words after which a condition or an assignment of SQL stands.
_AFTER_WORD = re.compile(
    r"\b(?:on|where|and|or|not|when|set|having|by|then|else|select)[\s(]*\Z", re.IGNORECASE
)
_NAME = re.compile(r"[a-z_][a-z_0-9]{0,40}|[A-Z_][A-Z_0-9]{0,40}|[A-Za-z_]{1,40}")
_LONGEST_WORD = 12

# Settings whose values each text has.
_OPEN = re.compile(
    r"(?:\A|[._\-])(?:user|username|schema|database|catalog|host|name|type|method|warehouse|port|id)\Z",
    re.IGNORECASE,
)
# Variables from which libraries take their secrets (AWS_SECRET_ACCESS_KEY, PGPASSWORD); not PWD, a folder.
_SECRET_VARIABLE = re.compile(
    r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|_KEY)\Z|\ADBT_ENV_SECRET_", re.IGNORECASE
)

_Class = TypeVar("_Class", bound=type)
_Call = TypeVar("_Call", bound=Callable[..., Any])


class Known:
    """The secrets of all profiles of this process, in each form in which a text may have them.

    Attributes:
        pattern: finds those that are looked for everywhere; None if there are none.
        after_key: finds those that are looked for after a key; None if there are none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: set[str] = set()
        self._words: set[str] = set()
        self.pattern: re.Pattern[str] | None = None
        self.after_key: re.Pattern[str] | None = None

    def add(self, secrets: set[str], words: set[str]) -> None:
        """Look for ``secrets`` everywhere, and for ``words`` where a key says what they are."""
        with self._lock:
            if secrets - self._secrets:
                self._secrets |= secrets
                self.pattern = re.compile("|".join(map(_literal, _all_forms(self._secrets))))
            if words - self._words:
                self._words |= words
                forms = "|".join(map(re.escape, _all_forms(self._words)))
                self.after_key = re.compile(
                    rf"""((?<![\w.\-]){_KEY}\\?["'`]?(?:\s*(?:=|:|->|,|\bis\b|\bwas\b)\s*|\s+)\\?["'`]?)(?:{forms})(?!\w)"""
                    # user:password@host, of which the host is no secret
                    rf"|((?<=\w):)(?:{forms})(?=@)"
                )


KNOWN = Known()


def learn(*settings: Mapping[Any, Any]) -> None:
    """Take note of the secrets in a profile, and have dbt's own log lines cleaned of them.

    A value that is also the user's name, a schema's or the like, and an ordinary word are masked where a key
    stands before them only: each text has them. Long secrets of the environment, which libraries read by
    themselves, are noted too.

    Args:
        settings: those of the profile, and of each further catalog. What one of them says openly, each text
            has that is about that, whose secret it may be beside.
    """
    secrets: set[str] = set()
    stated: set[str] = set()
    for key, value, inside in itertools.chain.from_iterable(map(_walk, settings)):
        text = str(value)
        if inside or is_secret_key(key):
            secrets.update(_parts(key, text))
        elif _OPEN.search(key):
            stated.update(_parts(key, text))
        secrets.update(_embedded(text))
        stated.update(_open_parts(text))
    sought = {s for s in secrets - stated if len(s) >= _SHORTEST and s.lower() not in _ORDINARY}
    environment = {
        value
        for name, value in os.environ.items()
        if _SECRET_VARIABLE.search(name) and len(value) >= _UNMISTAKABLE and value not in stated
    }
    KNOWN.add(sought | environment, {s for s in secrets - sought if s})
    for logger in get_event_manager().loggers:
        if not isinstance(logger.scrubber, Scrubber):
            logger.scrubber = Scrubber(logger.scrubber)


def clean(text: str) -> str:
    """Return a text without the secrets of the profiles, and without what looks like a secret."""
    if KNOWN.pattern is not None:
        text = KNOWN.pattern.sub(MASK, text)
    text = _USER_INFO.sub("", text)
    if KNOWN.after_key is not None:
        text = KNOWN.after_key.sub(lambda found: (found[1] or found[2]) + MASK, text)
    for header in (_HEADER, _FURTHER_HEADER):
        text = header.sub(lambda found: (found[1] or found[2]) + MASK, text)
    text = _BASIC.sub(_masked_basic, text)
    for pattern in (_SETTING, _ENTRY, _ARROW):
        text = pattern.sub(_masked, text)
    return text


def is_secret_key(key: str) -> bool:
    """Tell whether a setting of this name holds a secret."""
    return _SECRET_KEY.search(key) is not None and _ABOUT_A_SECRET.search(key) is None


def safe(exc: Exception) -> Exception:
    """Return an exception that can be shown with its causes: the same one, its texts cleaned in place.

    One that makes its text again each time is replaced by another that has the cleaned text.
    """
    try:
        if not _leaks(exc):
            return exc
        for link in chain(exc):
            link.args = tuple(clean(arg) if isinstance(arg, str) else arg for arg in link.args)
            if isinstance(getattr(link, "msg", None), str):
                link.msg = clean(link.msg)  # type: ignore[attr-defined]
        if not _leaks(exc):
            return exc
        return RuntimeError(f"{type(exc).__name__}: {clean(str(exc))}")
    except Exception:
        # The text of a Java exception is asked of Java, which may have ended.
        return RuntimeError(type(exc).__name__)


def shows_no_secret(cls: _Class) -> _Class:
    """Have all that the public methods of a class raise cleaned of secrets; a decorator of classes."""
    for name, member in list(vars(cls).items()):
        if callable(member) and not name.startswith("_"):
            setattr(cls, name, _guarded(member))
    return cls


# What a terminal obeys or hides, in place of showing it: but for dbt's own colours, tabs and ends of lines.
_CONTROL = re.compile(
    r"(?!\x1b\[(?:0|3[123])m)(?!\r\n)[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
)


def visible(text: str) -> str:
    """Return a text whose control characters, which names and values of others may have, are written out."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


class Scrubber:
    """Cleans what is logged, beside what dbt itself takes out.

    Attributes:
        before: what dbt does with a line.
    """

    def __init__(self, before: Callable[[str], str]) -> None:
        self.before = before

    def __call__(self, text: str) -> str:
        """Return a line without secrets, and without what a terminal would obey."""
        return visible(clean(str(self.before(text))))


def _guarded(method: _Call) -> _Call:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except Exception as exc:
            shown = safe(exc)
            if shown is exc:
                raise
            raise shown from None

    return call  # type: ignore[return-value]


def _leaks(exc: Exception) -> bool:
    return any(clean(str(link)) != str(link) for link in chain(exc))


def chain(exc: BaseException) -> Iterator[BaseException]:
    """Yield an exception, those that it came from, and those that its text is made of."""
    seen: set[int] = set()
    waiting: list[Any] = [exc]
    while waiting:
        link = waiting.pop()
        if isinstance(link, BaseException) and id(link) not in seen:
            seen.add(id(link))
            yield link
            waiting += [link.__cause__, link.__context__, *link.args]


def _masked(found: re.Match[str]) -> str:
    group = str(found.lastgroup)
    start, end = (position - found.start() for position in found.span(group))
    value = found[group]
    if group == "bare":
        # Of brackets those belong to the text around that close what is open there.
        value = value.rstrip(")]}")
        end = start + len(value)
    if not value or _NO_SECRET.search(found["key"]) or (group == "bare" and _is_sql(found, value)):
        return found[0]
    return found[0][:start] + MASK + found[0][end:]


def _is_sql(found: re.Match[str], value: str) -> bool:
    """Tell whether ``key=value`` is a condition or an assignment of SQL, with a column on both sides.

    In doubt it is a setting: the value has to be the column of a table, and either that column has the name
    of the one before it, or a word of SQL stands before the condition.
    """
    key = found["key"]
    if re.search(r"tokens\Z", key, re.IGNORECASE) and value.isdigit():
        return True
    if not re.fullmatch(r"[\w.]+", key) or not _QUALIFIED.fullmatch(value):
        return False
    steps = value.split(".")
    if steps[-1].lower() == key.rpartition(".")[2].lower():
        return True
    before = found.string[max(0, found.start() - _LONGEST_WORD) : found.start()]
    return _AFTER_WORD.search(before) is not None and all(map(_NAME.fullmatch, steps))


def _masked_basic(found: re.Match[str]) -> str:
    """Mask what follows ``Basic`` if it is a user and a password; the words of a text are not."""
    try:
        decoded = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        return found[0]
    return found[1] + MASK if b":" in decoded else found[0]


def _walk(value: Any, key: str = "", inside: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """Yield the key and value of each setting, and whether one above it is named like a secret."""
    if isinstance(value, Mapping):
        for name, nested in value.items():
            yield from _walk(nested, str(name), inside or is_secret_key(key))
    elif isinstance(value, list | tuple):
        for nested in value:
            yield from _walk(nested, key, inside)
    elif value is not None and not isinstance(value, bool):
        yield key, value, inside and _ABOUT_A_SECRET.search(f".{key}") is None


def _parts(key: str, text: str) -> Iterator[str]:
    """Yield the value of a setting and what can be sent of it by itself."""
    yield text
    yield text.strip()
    # A log may have each line of a key by itself.
    yield from (line.strip() for line in text.splitlines() if "-----" not in line)
    if is_secret_key(key):
        yield re.sub(rf"\A{_SCHEME}\s+", "", text.strip(), flags=re.IGNORECASE)  # "Bearer ..."
        if re.search("credential", key, re.IGNORECASE):
            yield text.partition(":")[2]  # a client's name, and its secret
            yield from _inside_json(text)


def _inside_json(text: str) -> Iterator[str]:
    """Yield the secrets of a file of credentials, whose text is the value of a setting."""
    try:
        found = json.loads(text)
    except ValueError:
        return
    for key, value, inside in _walk(found) if isinstance(found, Mapping) else ():
        if inside or is_secret_key(key):
            yield from _parts(key, str(value))


def _embedded(text: str) -> Iterator[str]:
    """Yield the secrets inside the value of a setting: in a URL, or after a key of their own."""
    for user_info in re.findall(r"://(.*)@", text):
        password = user_info.partition(":")[2]
        yield from (password, unquote(password), unquote_plus(password))
    for pattern in (_SETTING, _ENTRY):
        for found in pattern.finditer(text):
            value = found[str(found.lastgroup)]
            yield from (value, unquote(value), unquote_plus(value))
    for key, value in re.findall(r"[?&;]([^=&;]+)=([^&;]*)", text):
        if is_secret_key(key):
            yield from (value, unquote(value), unquote_plus(value))


def _open_parts(text: str) -> Iterator[str]:
    """Yield what a URL says openly: its user, its host, and the names in its path."""
    for address in re.findall(r"://(.*)", text):
        user_info, _, rest = address.rpartition("@")
        yield unquote(user_info.partition(":")[0])
        yield from re.split(r"[/:?&=]", rest.partition("?")[0])


def _forms(secret: str) -> set[str]:
    """Return a secret as texts may have it: in URLs, in quotes, in JSON, as Basic authentication."""
    encoded = {secret}
    for one in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        encoded |= {one, re.sub("%..", lambda found: found[0].lower(), one)}
    encoded.add(base64.b64encode(secret.encode("utf-8", "surrogatepass")).decode())
    for _ in range(2):  # a text in quotes may be quoted again
        encoded |= {repr(one)[1:-1] for one in encoded}
        encoded |= {json.dumps(one, ensure_ascii=plain)[1:-1] for one in encoded for plain in (True, False)}
        encoded |= {one.replace("'", "\\'") for one in encoded}
    return encoded


def _all_forms(secrets: set[str]) -> list[str]:
    """Return all forms of some secrets, the longest first: one may be the beginning of another."""
    return sorted(
        {form for secret in secrets for form in _forms(secret)}, key=lambda form: (-len(form), form)
    )


def _literal(form: str) -> str:
    literal = re.escape(form)
    if len(form) >= _UNMISTAKABLE:
        return literal
    before = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))" if re.match(r"\w", form) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", form) else ""
    return f"{before}{literal}{after}"
