from reverie.context.async_fitter import AsyncFitter as AsyncFitter
