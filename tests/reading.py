"""What a test reads off a built report."""


def sentences(report, question):
    """The answer to a question of the Summary; nothing where it is not asked."""
    return [
        line
        for block in report.sections[0].blocks
        if getattr(block, "question", "") == question
        for line in block.sentences
    ]
