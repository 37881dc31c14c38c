#!/usr/bin/env python3
"""Checks packaging/kubernetes/ without a cluster or a network: every field is one that the API has, of its type; what is named
is there (volumes, ports, secrets, claims); flags are flags of the programs. The fields are those that these manifests use, as
Kubernetes 1.30 and KEDA 2.14 document them; one that is missing below must be looked up and added. It is no proof that a cluster
takes them: they were not run on one."""
import re
import subprocess
import sys
import unittest

from service import BIN, SKIPPED, SOURCE

try:
    import yaml
except ImportError:
    print("skipped: python3-yaml is not installed")
    sys.exit(SKIPPED)

TEXT, NUMBER, FLAG = str, int, bool
QUANTITY = re.compile(r"\d+(m|Mi|Gi)?$")
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
LABELS = {"*": TEXT}
PORT = (TEXT, NUMBER)
METADATA = {"name": NAME, "generateName": TEXT, "labels": LABELS}
PROBE = {"httpGet!": {"path!": TEXT, "port!": PORT, "scheme": {"HTTP", "HTTPS"}}, "periodSeconds": NUMBER, "timeoutSeconds": NUMBER,
         "failureThreshold": NUMBER}
RESOURCES = {"requests": {"*": QUANTITY}, "limits": {"*": QUANTITY}}
SECCOMP = {"type!": {"RuntimeDefault", "Unconfined", "Localhost"}}
CONTAINER = {
    "name!": NAME, "image!": TEXT, "args": [TEXT], "command": [TEXT],
    "env": [{"name!": TEXT, "value": TEXT, "valueFrom": {"fieldRef": {"fieldPath!": TEXT}}}],
    "ports": [{"name": NAME, "containerPort!": NUMBER}],
    "startupProbe": PROBE, "livenessProbe": PROBE, "readinessProbe": PROBE, "resources": RESOURCES,
    "securityContext": {"allowPrivilegeEscalation": FLAG, "readOnlyRootFilesystem": FLAG, "procMount": {"Default", "Unmasked"},
                        "capabilities": {"drop": [TEXT], "add": [TEXT]}},
    "volumeMounts": [{"name!": NAME, "mountPath!": TEXT, "readOnly": FLAG}],
}
POD = {
    "terminationGracePeriodSeconds": NUMBER, "automountServiceAccountToken": FLAG, "restartPolicy": {"Always", "OnFailure", "Never"},
    "securityContext": {"runAsNonRoot": FLAG, "runAsUser": NUMBER, "runAsGroup": NUMBER, "fsGroup": NUMBER, "seccompProfile": SECCOMP},
    "nodeSelector": LABELS, "tolerations": [{"key": TEXT, "operator": {"Exists", "Equal"}, "value": TEXT,
                                             "effect": {"NoSchedule", "PreferNoSchedule", "NoExecute"}}],
    "containers!": [CONTAINER],
    "volumes": [{"name!": NAME, "persistentVolumeClaim": {"claimName!": NAME}, "emptyDir": {"sizeLimit": QUANTITY},
                 "secret": {"secretName!": NAME, "defaultMode": NUMBER},
                 "hostPath": {"path!": TEXT, "type": {"Directory", "DirectoryOrCreate"}}}],
}
TEMPLATE = {"metadata": METADATA, "spec!": POD}
JOB = {"backoffLimit": NUMBER, "ttlSecondsAfterFinished": NUMBER, "template!": TEMPLATE}
KINDS = {
    ("v1", "PersistentVolumeClaim"): {"accessModes!": [{"ReadWriteOnce", "ReadWriteOncePod"}], "resources!": RESOURCES,
                                      "storageClassName": TEXT},
    ("v1", "Service"): {"selector!": LABELS, "ports!": [{"name": NAME, "port!": NUMBER, "targetPort": PORT}]},
    ("apps/v1", "Deployment"): {"replicas": NUMBER, "strategy": {"type!": {"Recreate", "RollingUpdate"}},
                                "selector!": {"matchLabels!": LABELS}, "template!": TEMPLATE},
    ("batch/v1", "Job"): JOB,
    ("keda.sh/v1alpha1", "ScaledJob"): {
        "pollingInterval": NUMBER, "minReplicaCount": NUMBER, "maxReplicaCount": NUMBER, "successfulJobsHistoryLimit": NUMBER,
        "failedJobsHistoryLimit": NUMBER, "scalingStrategy": {"strategy": {"default", "accurate", "eager"}},
        "triggers!": [{"type!": {"prometheus"}, "metadata!": {"serverAddress!": TEXT, "query!": TEXT, "threshold!": TEXT,
                                                            "activationThreshold": TEXT, "ignoreNullValues": TEXT}}],
        "jobTargetRef!": JOB},
}


def mistakes(value, schema, where):
    """What is wrong with a value; a schema is a type, several, a set of words, a pattern, a list of one, or fields (! is required)."""
    if isinstance(schema, dict):
        if not isinstance(value, dict):
            yield f"{where}: expected fields"
            return
        fields = {name.rstrip("!"): inner for name, inner in schema.items()}
        for name in schema:
            if name.endswith("!") and name[:-1] not in value:
                yield f"{where}.{name[:-1]} is missing"
        for name, inner in value.items():
            if name not in fields and "*" not in fields:
                yield f"{where}.{name} is no field; there are {', '.join(sorted(fields))}"
            else:
                yield from mistakes(inner, fields.get(name, fields.get("*")), f"{where}.{name}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield f"{where}: expected a list"
            return
        for at, inner in enumerate(value):
            yield from mistakes(inner, schema[0], f"{where}[{at}]")
    elif isinstance(schema, set):
        if value not in schema:
            yield f"{where} is {value!r}; expected {', '.join(sorted(schema))}"
    elif isinstance(schema, re.Pattern):
        if not schema.match(str(value)):
            yield f"{where} is {value!r}"
    elif not isinstance(value, schema) or (isinstance(value, bool) and schema is not FLAG):
        yield f"{where} is {value!r}"


def mistakes_of(manifest):
    kind = KINDS.get((manifest.get("apiVersion"), manifest.get("kind")))
    if kind is None:
        return [f"{manifest.get('apiVersion')} {manifest.get('kind')} is no kind that is used here"]
    schema = {"apiVersion!": TEXT, "kind!": TEXT, "metadata!": METADATA, "spec!": kind}
    return list(mistakes(manifest, schema, manifest["kind"]))


def manifests():
    for file in sorted((SOURCE / "packaging/kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            yield file.name, manifest


def pods():
    for name, manifest in manifests():
        spec = manifest["spec"]
        template = spec.get("jobTargetRef", spec).get("template")
        if template:
            yield name, template["spec"]


def flags_of(program):
    return set(re.findall(r"(--[a-z-]+)", subprocess.run([BIN / program, "--help"], capture_output=True, text=True).stdout))


class KubernetesTest(unittest.TestCase):
    def test_every_field_is_one_of_the_api(self):
        found = [(name, text) for name, manifest in manifests() for text in mistakes_of(manifest)]
        self.assertEqual(found, [])
        self.assertEqual({manifest["kind"] for _, manifest in manifests()},
                         {"PersistentVolumeClaim", "Deployment", "Service", "Job", "ScaledJob"})

    def test_finds_mistakes(self):
        good = next(manifest for _, manifest in manifests() if manifest["kind"] == "Deployment")
        self.assertEqual(mistakes_of(good), [])
        for change in ["good['spec']['replica'] = 1", "good['spec']['replicas'] = '1'", "del good['spec']['selector']",
                       "good['spec']['template']['spec']['containers'][0]['ports'][0]['containerPort'] = True",
                       "good['kind'] = 'Deploy'"]:
            changed = yaml.safe_load(yaml.safe_dump(good))
            exec(change, {"good": changed})
            self.assertNotEqual(mistakes_of(changed), [], change)

    def test_what_is_named_is_there(self):
        claims = {manifest["metadata"]["name"] for _, manifest in manifests() if manifest["kind"] == "PersistentVolumeClaim"}
        for name, pod in pods():
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            for volume in volumes.values():
                self.assertEqual(len(volume), 2, f"{name}: a volume is one thing")
                if "persistentVolumeClaim" in volume:
                    self.assertIn(volume["persistentVolumeClaim"]["claimName"], claims)
                if "secret" in volume:
                    text = "".join(file.read_text() for file in (SOURCE / "packaging/kubernetes").glob("*.yaml"))
                    self.assertIn(f"kubectl create secret generic {volume['secret']['secretName']} ", text)
            for container in pod["containers"]:
                mounted = {mount["name"] for mount in container["volumeMounts"]}
                self.assertEqual(mounted, set(volumes), name)
                ports = {port["name"] for port in container.get("ports", [])}
                for probe in ["startupProbe", "livenessProbe", "readinessProbe"]:
                    if probe in container:
                        self.assertIn(container[probe]["httpGet"]["port"], ports)
                for environment in container.get("env", []):
                    self.assertEqual(len(environment), 2)

    def test_flags_are_the_programs_own(self):
        for name, pod in pods():
            for container in pod["containers"]:
                known = flags_of(f"pawl-{container['name']}")
                for argument in container["args"]:
                    self.assertIn(argument.split("=")[0], known, name)

    def test_the_worker_ends_before_it_is_killed(self):
        for name, pod in pods():
            for container in pod["containers"]:
                grace = [argument for argument in container["args"] if argument.startswith("--grace=")]
                if container["name"] == "worker":
                    self.assertLess(int(grace[0].removeprefix("--grace=").rstrip("s")), pod["terminationGracePeriodSeconds"], name)

    def test_containers_are_as_the_manifests_expect_them(self):
        users = {name: int(re.search(r"^USER (\d+)$", (SOURCE / f"packaging/container/{name}.Containerfile").read_text(), re.M).group(1))
                 for name in ["orchestrator", "worker"]}
        for name, pod in pods():
            user = pod["securityContext"]["runAsUser"]
            self.assertIn(user, {0, users[pod["containers"][0]["name"]]}, name)
            if user == 0:
                self.assertIn("counters", name, "only what needs counters is root")
        for file in (SOURCE / "packaging/container").glob("*.Containerfile"):
            text = file.read_text()
            self.assertIn("ADD ${TARBALL} /opt/", text)
            self.assertRegex(text, r'(?m)^ENTRYPOINT \["pawl-(orchestrator|worker)"\]$')


if __name__ == "__main__":
    unittest.main(verbosity=2)
