"""The validity of a prediction is read back from the text that tables have of it."""

import pytest

from commodel.price.validity import VALID, PriceStatus, Validity, choose_foremost

WHY = "messages of 1 MiB: probed up to 64 KiB"
KINDS = [kind for kind in PriceStatus if kind is not PriceStatus.OWN]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reason", ["", WHY])
def test_a_text_is_read_as_the_validity_that_wrote_it(kind, reason):
    validity = Validity(kind, reason or (WHY if kind.cause else ""))
    assert Validity.parse(validity.text) == validity
    assert validity.word == kind.word
    assert {other for other in KINDS if other.of(validity.text)} == (
        {kind, PriceStatus.UNPLACED} if kind is PriceStatus.UNNAMED else {kind}
    )


def test_what_a_model_says_in_its_own_words_is_kept():
    validity = Validity.parse("loses packets: 25 % get through")
    assert (validity.kind, validity.word) == (PriceStatus.OWN, "loses packets")
    assert validity.text == "loses packets: 25 % get through"
    assert Validity.parse("") == VALID


def test_of_several_failed_checks_the_one_that_takes_the_weight_is_reported():
    blind, crowded, far = (
        Validity(kind, WHY) for kind in (PriceStatus.BLIND, PriceStatus.CROWDED, PriceStatus.NOT_PROBED)
    )
    assert choose_foremost(crowded, far, VALID, blind) == blind
    assert choose_foremost(VALID, far, crowded) == far
    assert choose_foremost(VALID) == choose_foremost() == VALID
