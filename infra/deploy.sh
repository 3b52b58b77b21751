#!/bin/sh
# Plans, creates or deletes what an environment needs in the cloud: infra/deploy.sh create --env prod
cd "$(dirname "$0")/.." || exit 1
test -x .venv/bin/python || { echo "infra: Sluice is not set up here: make setup" >&2; exit 1; }
exec .venv/bin/python -m infra.deploy "$@"
