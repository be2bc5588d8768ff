from calibrant.rows.cells import Cells as Cells
from calibrant.rows.checks import Observations as Observations
from calibrant.rows.grids import Grid as Grid
from calibrant.rows.groups import (
    GroupedRows as GroupedRows,
)
from calibrant.rows.groups import (
    GroupedSource as GroupedSource,
)
from calibrant.rows.groups import (
    by_group as by_group,
)
from calibrant.rows.horizons import (
    HorizonRows as HorizonRows,
)
from calibrant.rows.horizons import (
    horizon as horizon,
)
from calibrant.rows.incidence import HorizonRisk as HorizonRisk
from calibrant.rows.intake import in_groups as in_groups
from calibrant.rows.scanned_groups import GroupColumns as GroupColumns
from calibrant.rows.sources import RowSource as RowSource
from calibrant.rows.tally import Tally as Tally
