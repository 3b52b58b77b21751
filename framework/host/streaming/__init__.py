"""The words of a stream's process for others: lines, answers over HTTP, and notes to systemd."""
