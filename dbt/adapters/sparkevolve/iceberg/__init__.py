"""All that is read and written through PyIceberg."""
