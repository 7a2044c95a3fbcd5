rule write_report:
    input:
        tables=experiment_tables(),
    output:
        report=f"results/reports/{PROJECT.project}.html",
