"""A server of SavedModels with the REST routes of TF Serving: `xlnet serve DIRECTORY`."""

from keras_xlnet.lazy_modules import requires_extra

with requires_extra("serve", f"`{__name__}`"):
    from keras_xlnet.server.model_store import ModelStore
    from keras_xlnet.server.routes import create_app

__all__ = ["ModelStore", "create_app"]
