{{- define "vfio-agent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "vfio-agent.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains (include "vfio-agent.name" .) .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "vfio-agent.name" .) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "vfio-agent.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* What finds the pods; never changes in an upgrade. */}}
{{- define "vfio-agent.selector" -}}
app.kubernetes.io/name: {{ include "vfio-agent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "vfio-agent.labels" -}}
{{ include "vfio-agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "vfio-agent.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{/* Empty where the namespace's own account does. */}}
{{- define "vfio-agent.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "vfio-agent.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* What asks whether the agent lives; with its arguments, since one may be --state-dir. */}}
{{- define "vfio-agent.health" -}}
command:
  - /usr/bin/vfio-agent
  - health
  {{- with .Values.extraArgs }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "vfio-agent.securityContext" -}}
{{- if .Values.securityContext -}}
{{ toYaml .Values.securityContext }}
{{- else if .Values.privileged -}}
privileged: true
runAsUser: 0
readOnlyRootFilesystem: true
{{- else -}}
privileged: false
# Writing driver_override, unbind and drivers_probe needs uid 0 and no capability; so do the
# d3cold_allowed of each device, sriov_numvfs and sriov_drivers_autoprobe (SR-IOV), and create
# and remove of mediated devices.
runAsUser: 0
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
  # Both: who has a device open.
  add: [SYS_PTRACE, DAC_READ_SEARCH]
seccompProfile: {type: RuntimeDefault}
{{- if not (include "vfio-agent.appArmorAnnotation" .) }}
# The runtime's own profile denies every write below /sys.
appArmorProfile: {type: Unconfined}
{{- end }}
{{- end -}}
{{- end -}}

{{/* AppArmor's profile before Kubernetes 1.30, which does not know the field. */}}
{{- define "vfio-agent.appArmorAnnotation" -}}
{{- if not (or .Values.privileged .Values.securityContext (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version)) -}}
container.apparmor.security.beta.kubernetes.io/vfio-agent: unconfined
{{- end -}}
{{- end -}}

{{/* A pod that goes with the label cannot switch the mode by it. */}}
{{- define "vfio-agent.checkMode" -}}
{{- if and (not .Values.existingConfigMap) (kindIs "map" .Values.config.mode) -}}
{{- $label := get .Values.config.mode "fromNodeLabel" -}}
{{- if kindIs "string" (index (default dict .Values.nodeSelector) $label) -}}
{{- fail (printf "config.mode.fromNodeLabel is %s, which nodeSelector asks for: when the label changes, the agent's pod would be deleted before it could switch. Take the key out of nodeSelector (null for it), or use another label." $label) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The mounts that go by `privileged`; the volumes below have the same names. */}}
{{- define "vfio-agent.nodeMounts" -}}
{{- if .Values.privileged -}}
# The whole of /sys, read-write: /sys/bus/pci/devices/* are links into /sys/devices.
- {name: sys, mountPath: /sys}
# A container's own /dev stays as it was at its start: /dev/vfio/<group> appears later.
- {name: dev, mountPath: /dev}
{{- else -}}
# The container's own /sys is read-only, which is right for all but these two.
- {name: sys-devices, mountPath: /sys/devices}
- {name: sys-bus-pci, mountPath: /sys/bus/pci}
# The groups' nodes, to see that they are there; they are not opened.
- {name: dev-vfio, mountPath: /dev/vfio, readOnly: true}
{{- end -}}
{{- end -}}

{{- define "vfio-agent.nodeVolumes" -}}
{{- if .Values.privileged -}}
- {name: sys, hostPath: {path: /sys, type: Directory}}
- {name: dev, hostPath: {path: /dev, type: Directory}}
{{- else -}}
- {name: sys-devices, hostPath: {path: /sys/devices, type: Directory}}
- {name: sys-bus-pci, hostPath: {path: /sys/bus/pci, type: Directory}}
# Made here where no vfio module is loaded yet: the kernel puts its nodes into it.
- {name: dev-vfio, hostPath: {path: /dev/vfio, type: DirectoryOrCreate}}
{{- end -}}
{{- end -}}

{{/* What the agent's configuration asks the node for: JSON, a list of paths with name and type. Not what
the user has mounted there himself, and nothing where the configuration is the user's own ConfigMap. */}}
{{- define "vfio-agent.wanted" -}}
{{- $wanted := list -}}
{{- if not .Values.existingConfigMap -}}
{{- $cdi := default dict .Values.config.cdi -}}
{{- $kubelet := default dict .Values.config.kubelet -}}
{{- with $cdi.dir -}}
{{- $wanted = append $wanted (dict "name" "cdi" "path" . "type" "DirectoryOrCreate") -}}
{{- end -}}
{{- if eq (default "socket" $kubelet.registration) "registry" -}}
{{- $path := printf "%s/plugins_registry" .Values.kubeletRootDir -}}
{{- $wanted = append $wanted (dict "name" "plugins-registry" "path" $path "type" "Directory") -}}
{{- end -}}
{{- if and (eq (toString $kubelet.iommufd) "true") (not .Values.privileged) -}}
{{- $wanted = append $wanted (dict "name" "dev-iommu" "path" "/dev/iommu" "type" "CharDevice" "readOnly" true) -}}
{{- end -}}
{{- end -}}
{{- $mine := list -}}
{{- if .Values.dra.enabled -}}
{{- $mine = list "/var/run/cdi" (printf "%s/plugins_registry" .Values.kubeletRootDir) -}}
{{- end -}}
{{- range .Values.extraVolumeMounts -}}{{- $mine = append $mine .mountPath -}}{{- end -}}
{{- $left := list -}}
{{- range $wanted -}}
{{- if not (has .path $mine) -}}{{- $left = append $left . -}}{{- end -}}
{{- end -}}
{{- toJson $left -}}
{{- end -}}

{{/* What the chart's own values say goes by the environment, which wins over the file. */}}
{{- define "vfio-agent.env" -}}
# Where the volume is, whatever the file says by now: the probes and the daemon mean the same place.
- name: VFIO_AGENT_STATE_DIR
  value: /var/lib/vfio-agent
- name: VFIO_AGENT_LOG_LEVEL
  value: {{ .Values.logging.level | quote }}
- name: VFIO_AGENT_LOG_FORMAT
  value: {{ .Values.logging.format | quote }}
- name: VFIO_AGENT_METRICS_LISTEN
  value: {{ if .Values.metrics.enabled }}{{ printf ":%v" .Values.metrics.port | quote }}{{ else }}""{{ end }}
- name: VFIO_AGENT_DEVICE_PLUGIN_DIR
  value: {{ .Values.devicePluginDir | quote }}
- name: VFIO_AGENT_KUBELET_ROOT_DIR
  value: {{ .Values.kubeletRootDir | quote }}
{{- if .Values.nfd.enabled }}
- name: VFIO_AGENT_NFD_DIR
  value: {{ .Values.nfd.dir | quote }}
{{- end }}
{{- if .Values.api.enabled }}
- name: VFIO_AGENT_NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
# Who reports the Events.
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}
{{- if .Values.dra.enabled }}
- name: VFIO_AGENT_DRA_DRIVER
  value: {{ .Values.dra.driverName | quote }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}
