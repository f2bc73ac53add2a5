import type { Tracer } from '@vmwright/core';
import type { RequestObserver } from './requests.ts';

/** Returns an observer that also records each request as a span of the reconcile that makes it. */
export function tracedRequests(observer: RequestObserver, tracer: Tracer | undefined): RequestObserver {
  if (tracer === undefined) return observer;
  return {
    ...observer,
    answered: (method, code, durationMs, path) => {
      observer.answered(method, code, durationMs, path);
      const status = Number(code);
      tracer.call({
        name: `kube-apiserver ${method}`,
        durationMs,
        isError: !(status < 400), // also true without a response: the status is then NaN
        attributes: {
          'http.request.method': method,
          'url.path': path.split('?', 1)[0] ?? path,
          ...(status > 0 && { 'http.response.status_code': status }),
        },
      });
    },
  };
}
