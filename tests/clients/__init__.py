"""Foreign clients through the proxy, judged by the bytes that arrive upstream."""
