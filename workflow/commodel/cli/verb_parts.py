"""What the verbs of extensions are made of: the class of a command, options with the meaning that
they have in every verb, and ways to print an answer.

These names stay within one `interface` of extensions. The other modules of this package may change.
"""

from commodel.cli._help import VerbCommand, make_option_group
from commodel.cli._options import (
    PATH,
    WORKBOOK_STYLES,
    choose_style,
    commutative_option,
    experiment_option,
    format_option,
    out_option,
    params_option,
    platform_option,
    process_count_option,
    quiet_option,
    same_types_option,
    set_option,
    style_option,
    verbose_option,
    workbook_style_option,
)
from commodel.cli._output import (
    make_progress_printer,
    print_exported,
    print_rows,
    show_waiting,
    write_answer,
    write_or_print,
    write_set,
)

__all__ = [
    "PATH",
    "WORKBOOK_STYLES",
    "VerbCommand",
    "choose_style",
    "commutative_option",
    "experiment_option",
    "format_option",
    "make_option_group",
    "make_progress_printer",
    "out_option",
    "params_option",
    "platform_option",
    "print_exported",
    "print_rows",
    "process_count_option",
    "quiet_option",
    "same_types_option",
    "set_option",
    "show_waiting",
    "style_option",
    "verbose_option",
    "workbook_style_option",
    "write_answer",
    "write_or_print",
    "write_set",
]
