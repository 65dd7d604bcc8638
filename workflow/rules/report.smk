rule report:
    input:
        f"results/{E}/comparison.csv",
        f"results/{E}/summary.csv",
        f"results/{E}/distributions.csv",
        f"results/{E}/unmeasured.csv",
        expand(f"results/{E}/fitted/{{platform}}/{{family}}.yaml", platform=PLAN.platforms, family=PLAN.families),
        texts=sorted(str(path) for path in Path(f"results/{E}/inputs").glob("*/*")),
        code=sources("report.stored", "report.html", "report.xlsx"),
    output:
        f"reports/{E}/{E}.xlsx",
        f"reports/{E}/index.html",
    message:
        "writing the workbook and the page"
    shell:
        "{COMMODEL} report --in results/{E} --out reports/{E} > /dev/null"
