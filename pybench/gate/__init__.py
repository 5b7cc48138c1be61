"""`pybench gate`: a base and a head, measured in turn in one job.

`sides` says what is measured, `job` carries it out round by round, and `answer` judges what the folders keep. A side in
another environment runs each trial in a process there: `other_python` starts it, `trial_process` is that process.
"""

from __future__ import annotations
