"""Checks what the README says of free-threaded Python, and, in any Python, that threads share a table; started by free_threaded.sh and CMake."""

import sys
import sysconfig
import threading
import unittest
import warnings

import numpy as np

with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    from troupe.replay import Table

THREADS = 8
STEPS = 500


class FreeThreaded(unittest.TestCase):
    @unittest.skipUnless(sysconfig.get_config_var("Py_GIL_DISABLED"), "this Python is not free-threaded")
    def test_the_extension_module_enables_the_lock(self):
        self.assertTrue(sys._is_gil_enabled())
        self.assertTrue(any("_native" in str(warning.message) for warning in warned))

    def test_threads_share_a_table(self):
        table = Table({"value": ((), "int64"), "thread": ((), "int64")}, max_items=THREADS * STEPS)
        failures, together = [], threading.Barrier(THREADS, timeout=60)

        def work(thread):
            try:
                writer = table.writer(1)
                together.wait()
                for value in range(STEPS):
                    writer.append(value=value, thread=thread)
                    writer.add_item(1)
                    writer.insert()
                    batch = table.sample(4)
                    table.update_priorities(batch.keys, np.ones(4))
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual((failures, [thread.is_alive() for thread in threads]), ([], [False] * THREADS))
        self.assertEqual((len(table), table.info().inserted, table.info().sampled), (THREADS * STEPS, THREADS * STEPS, 4 * THREADS * STEPS))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
