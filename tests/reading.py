"""Read answers from a built report."""


def sentences(report, question):
    """Return the sentences that answer a question of the Summary, each after its platform; none if
    the Summary lacks the question."""
    answers = {getattr(block, "question", ""): block for block in report.sections[0].blocks}
    wheres = {heading: heading.removeprefix(question).removeprefix(": ") for heading in answers}
    return [
        f"{where}: {line}" if where else line
        for heading, where in wheres.items()
        if heading in (question, f"{question}: {where}")
        for line in answers[heading].sentences
    ]
