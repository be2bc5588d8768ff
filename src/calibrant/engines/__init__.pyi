from calibrant.engines.scans import (
    GroupedScan as GroupedScan,
)
from calibrant.engines.scans import (
    Scan as Scan,
)
from calibrant.engines.scans import (
    scan as scan,
)
