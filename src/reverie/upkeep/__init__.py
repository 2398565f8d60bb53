"""What every door may call: forgetting, moving in and out, retention, the doctor, reports.

It works things out and prints nothing.
"""
