# What `snakemake --cores 2` finds first; the workflow stands where its catalogue and snakedeploy look for it.
include: "workflow/Snakefile"
