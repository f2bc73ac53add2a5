/** Label on a Pod: the name of a GPUInfo in the Pod's namespace. The Pod uses the reservation of that GPUInfo. */
export const GPUINFO_LABEL = 'vmwright.dev/gpuinfo';

/** Annotation on a Pod with the label `GPUINFO_LABEL`: the UID of the GPUInfo. The webhook sets the annotation. */
export const GPUINFO_UID = 'vmwright.dev/gpuinfo-uid';
