rule report:
    input:
        str(RESULTS.table("comparison")),
        str(RESULTS.table("summary")),
        str(RESULTS.table("distributions")),
        str(RESULTS.table("unmeasured")),
        [
            str(RESULTS.fitted(platform, model))
            for platform in PLAN.platforms
            for model in PLAN.models
        ],
        texts=[str(path) for path in RESULTS.inputs()],
        code=list_source_files(
            "reports.stored_results",
            "reports.html.page",
            "reports.pictures.render",
            "reports.xlsx.workbook",
        )
        + list_section_code()
        + (list_extension_code("PAPER") if PLAN.paper else []),
        looks=[
            str(path)
            for path in (
                *sorted(PACKAGE.glob("reports/html/page.*")),
                PACKAGE / "reports" / "columns.csv",
            )
            if path.suffix != ".py"
        ],
    output:
        report(
            f"reports/{E}/{E}.xlsx",
            caption="../report/workbook.rst",
            category="commodel",
            labels={"experiment": E, "file": "workbook"},
        ),
        report(
            f"reports/{E}/index.html",
            caption="../report/page.rst",
            category="commodel",
            labels={"experiment": E, "file": "page"},
        ),
        report(
            directory(f"reports/{E}/pictures"),
            patterns=["{picture}.svg"],
            caption="../report/pictures.rst",
            category="commodel",
            labels={"experiment": E, "file": "{picture}"},
        ),
    log:
        str(RESULTS.job_log("report")),
    localrule: True
    message:
        "writing the workbook and the page"
    shell:
        f"{COMMODEL} report --in {RESULTS.folder} --out reports/{E} --pictures reports/{E}/pictures > /dev/null"
