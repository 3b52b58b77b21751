"""The steps, one file each: what a spec says of it (`Written`) and what it does to rows (`resolve`)."""
