"""One file a kind of estimate, named by it; rltune.traces.estimates finds them."""
