"""The cloud side of an environment, in Terraform: modules in folders of their own, and `deploy`, which makes and deletes it."""
