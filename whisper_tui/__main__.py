"""`python -m whisper_tui` is `whisper-tui`. So is this file by its path, which also runs other modules with `-m`."""

import sys

if not __package__:
    # Isolated, Python adds no directory to its path: neither that of this file nor the current one (decision 4).
    sys.path.insert(0, __file__.rpartition("/")[0].rpartition("/")[0])
    from whisper_tui.system.own_program import add_root

    del sys.path[0]
    add_root()

if __name__ == "__main__":
    if not __package__ and sys.argv[1:2] == ["-m"]:
        import runpy

        module = sys.argv[2]
        del sys.argv[1:3]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        from whisper_tui.cli import main

        sys.exit(main())
