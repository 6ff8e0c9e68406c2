from spanwise.testing import check_head


def test_the_head_keeps_the_contract(tmp_path):
    check_head("mean-span", tmp_path)
