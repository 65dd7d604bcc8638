"""Statuses are read back from the texts that tables have of them."""

import pytest

from commodel.price.validity import PriceStatus, foremost, reason, word

WHY = "messages of 1 MiB: probed up to 64 KiB"
GENERAL = {PriceStatus.UNNAMED: {PriceStatus.UNPLACED}}  # what a status is as well


@pytest.mark.parametrize("status", PriceStatus)
def test_a_text_is_read_as_the_status_that_wrote_it_and_no_other(status):
    text = status.because(WHY)
    assert {other for other in PriceStatus if other.of(text)} == {status, *GENERAL.get(status, ())}
    assert word(text) == status.word
    assert reason(text).startswith(WHY)


@pytest.mark.parametrize("status", [status for status in PriceStatus if status != PriceStatus.UNNAMED])
def test_a_status_needs_no_reason(status):
    assert status.of(status.value)
    assert not reason(status.value)


def test_what_a_family_says_in_its_own_words_is_no_status():
    assert not any(status.of("loses packets: 25 % get through") for status in PriceStatus)


def test_of_several_doubts_that_is_told_which_takes_a_price_s_say():
    blind, crowded, far = (f"{word}: {WHY}" for word in ("blind to size", "blind to contention", "not probed"))
    assert foremost(crowded, far, "ok", blind, "") == blind
    assert foremost("", "ok", far, crowded) == far
    assert foremost("", "ok") == foremost() == "ok"
