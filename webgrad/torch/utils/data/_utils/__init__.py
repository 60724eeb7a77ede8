"""What DataLoader is made of, under torch's names: collate, fetch, worker."""

from . import collate as collate
from . import fetch as fetch
from . import worker as worker
