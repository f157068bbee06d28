"""One Kubernetes job for one stage, by kubectl: what Snakemake's cluster-generic executor calls to submit, ask, cancel.

Needs Python's standard library and kubectl alone. ``submit … SCRIPT`` prints the job's name, ``status … NAME`` prints
running, success or failed, ``cancel … NAME…`` deletes jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import uuid

INHERITED = ("RLTUNE_ROOT", "RLTUNE_REAL_TRACES", "RLTUNE_TRACE_FILES", "PATH", "TF_CPP_MIN_LOG_LEVEL")
"""Variables that a pod gets from the run where they are set."""
PAUSES_S = (1, 4, 16)
"""Between attempts to ask, where the cluster does not answer."""
KEPT_S = 86400
"""Kubernetes deletes an ended job after so long; until then `kubectl logs job/NAME` has what it said."""


def manifest(given: argparse.Namespace) -> dict:
    """The job as Kubernetes wants it: one pod, tried once, for Snakemake decides about retries."""
    name = f"rltune-{re.sub('[^a-z0-9]+', '-', given.name.lower()).strip('-')[:30]}-{uuid.uuid4().hex[:10]}"
    names = dict.fromkeys([*INHERITED, *filter(None, given.environment.split(","))])
    asked = {"cpu": str(given.cpus), "memory": f"{given.mem_mb}M"}
    pod = {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "stage",
                "image": given.image,
                "command": ["/bin/bash", given.script],
                "workingDir": os.getcwd(),
                "env": [{"name": n, "value": os.environ[n]} for n in names if n in os.environ],
                "resources": {"requests": asked, "limits": {"memory": asked["memory"]}},
                "volumeMounts": [{"name": "shared", "mountPath": given.mount}],
            }
        ],
        "volumes": [{"name": "shared", "persistentVolumeClaim": {"claimName": given.claim}}],
    }
    pod["activeDeadlineSeconds"] = 60 * given.minutes  # the pod's: the Job's would count the wait for a node too
    if given.service_account:
        pod["serviceAccountName"] = given.service_account
    spec = {
        "backoffLimit": 0,
        "ttlSecondsAfterFinished": KEPT_S,
        "template": {"metadata": {"labels": {"app": "rltune"}}, "spec": pod},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"app": "rltune"}},
        "spec": spec,
    }


def kubectl(*words: str, send: str | None = None) -> str:
    """What kubectl prints; its own message, and an end, where it fails again and again."""
    command = ["kubectl", *words]
    for pause in (*PAUSES_S, None):
        try:
            done = subprocess.run(command, input=send, capture_output=True, text=True)
        except FileNotFoundError:
            sys.exit("rltune: profile kubernetes needs the command kubectl, which is not on PATH: put it into the pod")
        if not done.returncode or pause is None or send is not None:  # a job sent twice would run twice
            break
        time.sleep(pause)
    if done.returncode:
        sys.exit(f"rltune: kubectl failed (status {done.returncode}): {' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout


def submit(given: argparse.Namespace) -> str:
    """Make the job; its name."""
    told = manifest(given)
    kubectl("create", "-f", "-", send=json.dumps(told))
    return told["metadata"]["name"]


def status(given: argparse.Namespace) -> str:
    """How the job is, in the words that Snakemake knows. A job that is gone has failed: somebody deleted it."""
    text = kubectl("get", "job", given.job, "--ignore-not-found", "-o", "json")
    if not text.strip():
        return "failed"
    now = json.loads(text).get("status", {})
    ended = {c["type"] for c in now.get("conditions", ()) if c["status"] == "True"}
    return "success" if "Complete" in ended else "failed" if "Failed" in ended else "running"


def cancel(given: argparse.Namespace) -> str:
    """Delete the jobs, and their pods with them."""
    return kubectl("delete", "job", "--ignore-not-found", "--wait=false", *given.jobs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    ways = parser.add_subparsers(required=True)
    for way in (submit, status, cancel):
        one = ways.add_parser(way.__name__)
        one.set_defaults(way=way)
        if way is submit:
            for option in ("--image", "--claim", "--mount", "--name"):
                one.add_argument(option, required=True)
            for option in ("--cpus", "--mem-mb", "--minutes"):
                one.add_argument(option, type=int, required=True)
            one.add_argument("--service-account", default="")
            one.add_argument("--environment", default="")
            one.add_argument("script")
        else:
            one.add_argument(*(["job"] if way is status else ["jobs"]), **({} if way is status else {"nargs": "+"}))
    given = parser.parse_args()
    print(given.way(given), end="" if given.way is cancel else "\n")


if __name__ == "__main__":
    main()
