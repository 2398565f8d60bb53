"""The proxy: a client that is already in use gets the layers by changing one URL."""
