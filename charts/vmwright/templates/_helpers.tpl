{{- define "vmwright.labels" -}}
app.kubernetes.io/name: vmwright
{{ include "vmwright.helmLabels" . }}
{{- end }}

{{- define "vmwright.helmLabels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "vmwright.crdAnnotations" -}}
{{- if .Values.crds.keep }}
helm.sh/resource-policy: keep
{{- end }}
{{- end }}

{{- /* The digest identifies the image, so that the tag is not needed. */}}
{{- define "vmwright.image" -}}
{{- with .Values.image }}
{{- .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- /* Excludes controllers instead of naming the others: the operator ends if a controller that is named cannot run. */}}
{{- define "vmwright.excludedControllers" -}}
{{- range list "vm" "vmgroup" "kubevirt" "gpuinfo" }}
{{- if not (has . $.Values.controllers) }},-{{ . }}{{ end }}
{{- end }}
{{- end }}

{{- /* The variables of a list that extraEnv sets. They replace the chart's own, which the operator would reject beside them. */}}
{{- define "vmwright.givenEnv" -}}
{{- $names := rest . }}
{{- range (first .).Values.extraEnv }}
{{- if has .name $names }}{{ .name }} {{ end }}
{{- end }}
{{- end }}
