"""webgrad's side: the workloads exported as anybody would."""


def export_work(name, inputs, folder):
    pass
