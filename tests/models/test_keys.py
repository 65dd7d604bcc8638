"""Names of values, made and read."""

from commodel.models.keys import Pair, key, parse, sample


def test_what_is_made_is_read_again():
    assert parse("L") == ("L", "", "")
    assert parse(key("o", "a")) == ("o", "o", "a")
    assert parse(key("o_0", "fat", "a")) == ("o_0", "o_0.fat", "a")
    assert parse(sample("g", 64)).sample == (64, None)
    assert parse(sample(key("L_1", Pair("fat", "thin")), 64.0, 3)).sample == (64, 3)
    assert parse("o.fat.thin.64x3") == ("o", "o.fat.thin", "64x3")
    assert not any(parse(name).sample for name in ("L", "o.a", "o.x1", "C.fat"))


def test_a_pair_knows_the_types_of_both_nodes():
    assert Pair.parse("fat.thin").types == ("fat", "thin")
    assert Pair.parse("fat.same").types == ("fat", "fat")
    assert Pair.parse("fat.same").within
    assert not Pair.parse("fat.fat").within
    assert str(Pair.parse("fat.thin")) == "fat.thin"
