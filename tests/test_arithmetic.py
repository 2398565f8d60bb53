"""One thread for recall's products, and the caller's own as they were."""

from __future__ import annotations

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from reverie.concurrency import numpy, one_thread

pytestmark = pytest.mark.spec("B2.local_meaning")


def _threads() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


def test_the_products_have_one_thread_and_the_callers_own_come_back() -> None:
    assert numpy() is not None
    with threadpool_limits(limits=2, user_api="blas"):
        with one_thread():
            assert _threads() == {1}
        assert _threads() == {2}


def test_two_that_overlap_leave_the_callers_threads_as_they_were() -> None:
    assert numpy() is not None
    inside, go_on = threading.Event(), threading.Event()

    def first() -> None:
        with one_thread():
            inside.set()
            go_on.wait(10)

    def second() -> None:
        with one_thread():
            pass

    with threadpool_limits(limits=2, user_api="blas"):
        workers = [threading.Thread(target=first), threading.Thread(target=second)]
        workers[0].start()
        assert inside.wait(10)
        workers[1].start()
        go_on.set()
        for worker in workers:
            worker.join(10)
        assert _threads() == {2}
