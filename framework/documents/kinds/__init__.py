"""The kinds of documents, one file each, with the document's options and its part in a plan."""
