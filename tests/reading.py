"""What a test reads off a built report."""


def sentences(report, question):
    """The answer to a question of the Summary, with the platform that a heading names before each sentence; nothing
    where it is not asked."""
    answers = {getattr(block, "question", ""): block for block in report.sections[0].blocks}
    wheres = {heading: heading.removeprefix(question).removeprefix(": ") for heading in answers}
    return [
        f"{where}: {line}" if where else line
        for heading, where in wheres.items()
        if heading in (question, f"{question}: {where}")
        for line in answers[heading].sentences
    ]
