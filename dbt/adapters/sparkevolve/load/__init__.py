"""One run of an incremental model, from its query to the published rows."""
