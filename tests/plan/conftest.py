"""Each test here begins without plans and without counts."""

from tests.clean_process import clean_process as clean_process
