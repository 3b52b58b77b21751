"""`infra/deploy.sh`: plans, creates and deletes what an environment needs in the cloud."""
