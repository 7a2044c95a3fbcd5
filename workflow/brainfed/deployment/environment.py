"""What `brainfed join` says to the jobs that it starts, by environment variables."""

DESK = "BRAINFED_DESK"
"""Path of the socket of the site's desk."""
SECRET = "BRAINFED_SECRET"
"""Path of the file with the key of the site's protective noise."""
