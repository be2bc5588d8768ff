from calibrant.monitors.histories import MonitorHistory as MonitorHistory
from calibrant.monitors.incoming import new_files as new_files
from calibrant.monitors.metrics import openmetrics as openmetrics
from calibrant.monitors.monitor import Monitor as Monitor
from calibrant.monitors.repaired import (
    RollingReading as RollingReading,
)
from calibrant.monitors.repaired import (
    WindowComparison as WindowComparison,
)
from calibrant.monitors.repaired import (
    WindowScores as WindowScores,
)
from calibrant.monitors.results import (
    Alarm as Alarm,
)
from calibrant.monitors.results import (
    Reading as Reading,
)
from calibrant.monitors.results import (
    SegmentReadings as SegmentReadings,
)
from calibrant.monitors.rolling import RollingRecalibrator as RollingRecalibrator
from calibrant.monitors.segments import Monitors as Monitors
from calibrant.monitors.watch import Watch as Watch
from calibrant.monitors.windows import compare_windows as compare_windows
from calibrant.rows.times import period_of as period_of
