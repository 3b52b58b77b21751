"""Notices about a written file, one file each. The file's name is the option of `notify` that names it.

A file has `Options`, `plan_notice(written, where, template, linked, draft)`, which gives a `Notice` or reports problems (`template` checks
a text with `{window_start}` in it; `linked` is true for a file in an object store, which can have a link), and
`send(notice, about, secrets)`, which returns what was sent, in words, or raises a `SluiceError`."""
