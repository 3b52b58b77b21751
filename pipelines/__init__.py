"""What Dagster opens."""

import warnings

from dagster import BetaWarning, PreviewWarning

# Dagster would say once per asset that freshness policies and code references are new.
warnings.simplefilter("ignore", BetaWarning)
warnings.simplefilter("ignore", PreviewWarning)
