"""The kinds of documents: one file each, with what such a document says and what it becomes in a plan."""
