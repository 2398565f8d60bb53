"""The web page: what Reverie did and knows, for a person in a browser, on this machine alone."""
