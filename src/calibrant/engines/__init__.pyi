from calibrant.engines.class_scans import (
    ClassScan as ClassScan,
)
from calibrant.engines.clustered import (
    ClusteredScan as ClusteredScan,
)
from calibrant.engines.handles import (
    GroupedScan as GroupedScan,
)
from calibrant.engines.handles import (
    Scan as Scan,
)
from calibrant.engines.scans import (
    scan as scan,
)
