rule report:
    input:
        str(RESULTS.table("comparison")),
        str(RESULTS.table("summary")),
        str(RESULTS.table("distributions")),
        str(RESULTS.table("unmeasured")),
        [str(RESULTS.fitted(platform, family)) for platform in PLAN.platforms for family in PLAN.families],
        texts=[str(path) for path in RESULTS.inputs()],
        code=sources("report.stored", "report.html.page", "report.xlsx.workbook"),
        looks=[str(path) for path in sorted(PACKAGE.glob("report/html/page.*s"))],
    output:
        f"reports/{E}/{E}.xlsx",
        f"reports/{E}/index.html",
    localrule: True
    message:
        "writing the workbook and the page"
    shell:
        "{COMMODEL} report --in {RESULTS.folder} --out reports/{E} > /dev/null"
