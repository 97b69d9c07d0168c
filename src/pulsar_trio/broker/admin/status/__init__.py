"""`/status`: a page that shows in a browser what the broker does at this moment."""
