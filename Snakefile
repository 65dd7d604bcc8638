# What `snakemake --cores 2` finds first; the workflow stands where its catalogue and snakedeploy look for it. The
# directive `include:` would leave its default target behind.
workflow.include("workflow/Snakefile", overwrite_default_target=True)
