/** Label on a Pod: the name of the GPUInfo in the Pod's namespace whose reservation the Pod uses. */
export const GPUINFO_LABEL = 'vmwright.dev/gpuinfo';

/** Annotation on a Pod with that label: the UID of the GPUInfo. The webhook sets the annotation. */
export const GPUINFO_UID = 'vmwright.dev/gpuinfo-uid';
