"""An application that receives, sends and acknowledges in transactions, with a client process of its own."""
