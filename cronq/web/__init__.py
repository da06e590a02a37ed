"""The page: the same facts as the API, rendered on the server, kept live by a little script of our own."""
